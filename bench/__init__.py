"""How fast the product is, beside what a user would pick instead: `make bench`."""
