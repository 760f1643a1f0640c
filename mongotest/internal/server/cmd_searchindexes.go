package server

import (
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// The commands about search indexes go to a process of Atlas that is not there, as with a server of one's own.
func init() {
	for _, name := range []string{"createSearchIndexes", "updateSearchIndex", "dropSearchIndex", "listSearchIndexes"} {
		register(&Command{Name: name, Since: release.At(7, 0, 0), Run: refuseSearchIndexes})
	}
}

func refuseSearchIndexes(_ *Request, dst []byte) ([]byte, error) {
	return dst, srverr.New(srverr.SearchNotEnabled, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
		"Please connect to Atlas or an AtlasCLI local deployment to enable.")
}
