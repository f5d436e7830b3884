"""One file per verb or small family; loaded only when the verb is used."""
