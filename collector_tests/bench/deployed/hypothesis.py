"""In the way of the real one, which pandera imports where it finds it (0.2 s); a deployment has no test tools."""

raise ImportError("hypothesis is not part of a deployment")
