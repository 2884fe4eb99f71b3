package cabi

// Disk: files and what is done to descriptors. IDs of this part start at 200.
var callsDisk = []Call{
	{ID: 200, Name: "read", Sig: "ssize_t read(int fd, void *buf, size_t n)", Class: Disk, Block: true, Rec: "obj fd fd; f1 n; data fd buf r", Reexec: "feed", Issue: "same", Test: "read"},
	{ID: 201, Name: "write", Sig: "ssize_t write(int fd, const void *buf, size_t n)", Class: Disk, Block: true, Rec: "obj fd fd; f1 n; wrote fd buf r", Reexec: "real", Issue: "same", Test: "write"},
}
