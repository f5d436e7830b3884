"""One file per way of listing a provider's events. A file sees `scheduler.core` alone of the product.

`registry` finds them, here and in folders of their users; `common/` holds what several share.
"""
