"""A search for the best values of recipe keys: see `decent_train.search`."""
