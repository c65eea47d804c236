"""`make bench`: the whole path (frontier to `latest`, durable) against Scrapy over the same pages: docs/benchmarks.md.

`python -m collector_tests.bench` runs everything and writes that page; `--pages 500 --pairs 1` is a quick look. Every
contender is a module here that runs in a fresh process and prints one JSON object:

    ours.py            discover, collect, process, publish, on embedded Postgres with fsync on
    with_scrapy.py     Scrapy, to JSON Lines
    bare.py            aiohttp + lexbor, nothing kept: what the site can give
    dagster_run.py     recorded Dagster runs of windows with nothing in them: their fixed cost
"""
