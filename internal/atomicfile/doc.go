// Package atomicfile replaces files as a whole: a reader, and the next start of the program, see the old content or the new one. After Write has
// returned, the new content also survives a loss of power, unless the file system cannot sync directories.
package atomicfile
