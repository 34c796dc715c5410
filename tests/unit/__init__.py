"""Pure rules, with fakes for every port."""
