// Package uri turns a connection string into a configuration (specifications: Connection String,
// URI Options, and the options that other specifications add). It does no I/O: what DNS says about
// a mongodb+srv string is handed in.
//
// The steps are Parse, then whatever the program itself configures (a field that is set in code
// overrides the string), then ApplySRV for a mongodb+srv string, then Validate, which fills in the
// defaults that depend on several options and refuses options that contradict each other.
package uri
