// Package prose has the prose tests of the specifications: those that a text describes in words.
// Each names its own; docs/specs.md has them by the texts. What else there is to test of the same
// text stands beside them.
package prose
