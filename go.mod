module prophet

go 1.26
