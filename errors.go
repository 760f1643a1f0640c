package allium

// The server's codes that the driver itself looks at.
const (
	codeNamespaceNotFound = 26
	codeCursorNotFound    = 43
	codeMaxTimeMSExpired  = 50
	codeCursorKilled      = 237
	codeNoSuchTransaction = 251
)
