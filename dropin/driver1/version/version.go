// Package version has the version of the official driver whose API this module offers.
package version

// Driver is that version.
var Driver = "1.17.10"
