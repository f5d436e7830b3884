"""For tests of plug-ins, and for looking at the product at work: a contract suite, and a hostile provider."""
