"""The text of the shop's pages as %-templates; `markup.py` fills them."""

# ruff: noqa: E501  (the real pages have such lines)

from __future__ import annotations

STARS = '<i class="icon-star"></i>\n        ' * 5

HEAD = """<!DOCTYPE html>
<!--[if lt IE 7]>      <html lang="en-us" class="no-js lt-ie9 lt-ie8 lt-ie7"> <![endif]-->
<!--[if IE 7]>         <html lang="en-us" class="no-js lt-ie9 lt-ie8"> <![endif]-->
<!--[if IE 8]>         <html lang="en-us" class="no-js lt-ie9"> <![endif]-->
<!--[if gt IE 8]><!--> <html lang="en-us" class="no-js"> <!--<![endif]-->
    <head>
        <title>
    %(title)s | Books to Scrape - Sandbox
</title>

        <meta http-equiv="content-type" content="text/html; charset=UTF-8" />
        <meta name="created" content="24th Jun 2016 09:29" />
        <meta name="description" content="%(summary)s" />
        <meta name="viewport" content="width=device-width" />
        <meta name="robots" content="NOARCHIVE,NOCACHE" />

        <!-- Le HTML5 shim, for IE6-8 support of HTML elements -->
        <!--[if lt IE 9]>
        <script src="//html5shim.googlecode.com/svn/trunk/html5.js"></script>
        <![endif]-->

            <link rel="shortcut icon" href="%(root)sstatic/oscar/favicon.ico" />

        <link rel="stylesheet" type="text/css" href="%(root)sstatic/oscar/css/styles.css" />

    <link rel="stylesheet" href="%(root)sstatic/oscar/js/bootstrap-datetimepicker/bootstrap-datetimepicker.css" />
    <link rel="stylesheet" type="text/css" href="%(root)sstatic/oscar/css/datetimepicker.css" />

    </head>

    <body id="default" class="default">

    <header class="header container-fluid">
        <div class="page_inner">
            <div class="row">
                <div class="col-sm-8 h1"><a href="%(root)sindex.html">Books to Scrape</a><small> We love being scraped!</small>
</div>

            </div>
        </div>
    </header>
"""

FOOT = """
<footer class="footer container-fluid">

</footer>

            <!-- jQuery -->
            <script src="%(root)sstatic/oscar/js/jquery/jquery-1.9.1.min.js"></script>

    <!-- Twitter Bootstrap -->
    <script type="text/javascript" src="%(root)sstatic/oscar/js/bootstrap3/bootstrap.min.js"></script>
    <!-- Oscar -->
    <script src="%(root)sstatic/oscar/js/oscar/ui.js" type="text/javascript" charset="utf-8"></script>

    <script src="%(root)sstatic/oscar/js/bootstrap-datetimepicker/bootstrap-datetimepicker.js" type="text/javascript" charset="utf-8"></script>

        <script type="text/javascript">
            $(function() {

    oscar.init();

            });
        </script>

        <!-- Version: N/A -->

    </body>
</html>
"""

DETAIL = """
        <div class="container-fluid page">
            <div class="page_inner">

<ul class="breadcrumb">
    <li>
        <a href="../../index.html">Home</a>
    </li>

        <li>
            <a href="../category/books_1/index.html">Books</a>
        </li>

        <li>
            <a href="../category/books/%(category_slug)s/index.html">%(category)s</a>
        </li>

        <li class="active">%(title)s</li>

</ul>

<div id="messages">

</div>

                <div class="content">

                    <div id="promotions">

                    </div>

                    <div id="content_inner">

<article class="product_page"><!-- Start of product page -->

    <div class="row">

        <div class="col-sm-6">

        <div id="product_gallery" class="carousel">
            <div class="thumbnail">
                <div class="carousel-inner">
                    <div class="item active">

                            <img src="../../media/cache/%(image)s.jpg" alt="%(title)s" />

                    </div>
                </div>
            </div>
        </div>

        </div>

        <div class="col-sm-6 product_main">

            <h1>%(title)s</h1>

        <p class="price_color">£%(price)s</p>

<p class="instock availability">
    <i class="icon-ok"></i>

        In stock (%(stock)d available)

</p>

    <p class="star-rating %(rating)s">
        %(stars)s
        <!-- <small><a href="/catalogue/%(slug)s/reviews/">

                    %(reviews)d customer reviews

        </a></small>
         -->&nbsp;

<!--
    <a id="write_review" href="/catalogue/%(slug)s/reviews/add/#addreview" class="btn btn-success btn-sm">
        Write a review
    </a>

 --></p>

            <hr/>

            <div class="alert alert-warning" role="alert"><strong>Warning!</strong> This is a demo website for web scraping purposes. Prices and ratings here were randomly assigned and have no real meaning.</div>

        </div><!-- /col-sm-6 -->

    </div><!-- /row -->

        <div id="product_description" class="sub-header">
            <h2>Product Description</h2>
        </div>
        <p>%(description)s</p>

    <div class="sub-header">
        <h2>Product Information</h2>
    </div>
    <table class="table table-striped">

        <tr>
            <th>UPC</th><td>%(upc)s</td>
        </tr>

        <tr>
            <th>Product Type</th><td>Books</td>
        </tr>

            <tr>
                <th>Price (excl. tax)</th><td>£%(price)s</td>
            </tr>

                <tr>
                    <th>Price (incl. tax)</th><td>£%(price)s</td>
                </tr>
                <tr>
                    <th>Tax</th><td>£0.00</td>
                </tr>

            <tr>
                <th>Availability</th>
                <td>In stock (%(stock)d available)</td>
            </tr>

            <tr>
                <th>Number of reviews</th>
                <td>%(reviews)d</td>
            </tr>

    </table>

        <section>
            <div id="reviews" class="sub-header">
            %(review_markup)s</div>
        </section>

</article><!-- End of product page -->
</div>
                </div>
            </div>
        </div>
"""

REVIEW = """<div class="review" id="review-%d">
                <h4><span class="reviewer">Reader %04x</span> <small class="date">%d March 2026</small></h4>
                <p>%s</p>
            </div>
            """

LISTING = """
<div class="container-fluid page">
    <div class="page_inner">

    <ul class="breadcrumb">
        <li>
            <a href="%(root)sindex.html">Home</a>
        </li>
        <li class="active">%(heading)s</li>
    </ul>

        <div class="row">

            <aside class="sidebar col-sm-4 col-md-3">

                <div id="promotions_left">

                </div>

        <div class="side_categories">
            <ul class="nav nav-list">

                    <li>
                        <a href="%(catalogue)scategory/books_1/index.html">

                                Books

                        </a>

                        <ul>
%(categories)s
                        </ul>
                    </li>

            </ul>
        </div>

            </aside>

            <div class="col-sm-8 col-md-9">

                <div class="page-header action">
                    <h1>%(heading)s</h1>
                </div>

<div id="messages">

</div>

<div id="promotions">

</div>

    <form method="get" class="form-horizontal">

        <div style="display:none">

        </div>

                    <strong>%(total)d</strong> results - showing <strong>%(first)d</strong> to <strong>%(last)d</strong>.

    </form>

        <section>
            <div class="alert alert-warning" role="alert"><strong>Warning!</strong> This is a demo website for web scraping purposes. Prices and ratings here were randomly assigned and have no real meaning.</div>

            <div>
                <ol class="row">
%(cards)s
                </ol>

    <div>
%(pager)s
    </div>

            </div>
        </section>

            </div>

        </div><!-- /row -->
    </div><!-- /page_inner -->
</div><!-- /container-fluid -->
"""

CATEGORY = """
                    <li>
                        <a href="%scategory/books/%s/index.html">

                                %s

                        </a>

                        </li>
"""

CARD = """
                        <li class="col-xs-6 col-sm-4 col-md-3 col-lg-3">

    <article class="product_pod" data-category="%(category)s">

            <div class="image_container">

                    <a href="%(url)s"><img src="%(root)smedia/cache/%(image)s.jpg" alt="%(title)s" class="thumbnail"></a>

            </div>

                <p class="star-rating %(rating)s">
                    %(stars)s
                </p>

            <h3><a href="%(url)s" title="%(title)s">%(short_title)s</a></h3>

            <div class="product_price">

        <p class="price_color">£%(price)s</p>

<p class="instock availability">
    <i class="icon-ok"></i>

        In stock

</p>

    <form>
        <button type="submit" class="btn btn-primary btn-block" data-loading-text="Adding...">Add to basket</button>
    </form>

            </div>

    </article>

</li>
"""
