package cabi

// IDs of this part start at 1000.
var callsSignal = []Call{}
