"""Writes modules to files that train as the modules do: see `decent_train.export`."""
