// Package symbols finds the functions, files and lines behind addresses of modules.
package symbols
