package release

// AllParsed reports whether servers of the version read the arguments that every command takes
// (maxTimeMS, readConcern, writeConcern) as they read a command's own, and have a definition of
// nearly every command. It is so in 8.2, where a test suite of others has the errors of a server,
// and not in 7.0; which version between them was the first is not known.
func (v Version) AllParsed() bool { return v.AtLeast(8, 1) }
