package server

func init() {
	// There are no inconsistencies: what a cluster knows of its collections is in one place.
	Register(&Command{Name: "checkMetadataConsistency", Roles: []Role{Mongos}, Where: Anywhere, Run: func(r *Request, dst []byte) ([]byte, error) {
		return appendListCursor(dst, r.DB+".$cmd.checkMetadataConsistency", 0, func(dst []byte) []byte { return dst }), nil
	}})
}
