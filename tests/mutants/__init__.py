"""Proves that the tests notice: each safety line of lambdas/ is taken away in turn, and its tests must turn red."""
