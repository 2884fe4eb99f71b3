package cabi

// IDs of this part start at 700.
var callsThread = []Call{}
