package cabi

// IDs of this part start at 550.
var callsStdio = []Call{}
