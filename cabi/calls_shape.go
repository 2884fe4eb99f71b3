package cabi

// IDs of this part start at 900.
var callsShape = []Call{}
