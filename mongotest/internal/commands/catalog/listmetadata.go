package catalog

import (
	"allium/mongotest/internal/server"
)

func init() {
	// There are no inconsistencies: what a cluster knows of its collections is in one place.
	server.Register(&server.Command{Name: "checkMetadataConsistency", Needs: server.OnColl("checkMetadataConsistency"),
		Roles: []server.Role{server.Mongos}, Where: server.Anywhere,
		Run: func(r *server.Request, dst []byte) ([]byte, error) {
			return server.AppendListCursor(dst, r.DB+".$cmd.checkMetadataConsistency", 0, func(dst []byte) []byte {
				return dst
			}), nil
		}})
}
