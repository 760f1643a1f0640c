// Package archtest holds the tests of the project's own shape: imports go down only, every file is
// of a readable length, and the list of exported symbols is the one that a reviewer has seen.
package archtest
