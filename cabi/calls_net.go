package cabi

// IDs of this part start at 400.
var callsNet = []Call{}
