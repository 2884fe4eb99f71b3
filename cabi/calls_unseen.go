package cabi

// IDs of this part start at 1100.
var callsUnseen = []Call{}
