package hello

// The versions of the wire protocol that this driver speaks, and the release that the least one
// came with. The greatest one leaves room for releases to come.
const (
	MinWireVersion   = 6
	MaxWireVersion   = 29
	MinServerVersion = "3.6"
)
