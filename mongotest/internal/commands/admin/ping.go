package admin

import (
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/server"
)

func init() {
	server.Register(&server.Command{Name: "ping", Help: "a way to check that the server is alive. responds immediately even if server is in a db lock.",
		NoAuth: true, UsesSession: true, API: server.V1, DataLake: true, Where: server.Anywhere, Run: runPing})
	// Commands that servers have for tests, such as these of the Stable API.
	for name, api := range map[string]server.API{
		"testVersion2": {In: "2"}, "testVersions1And2": {In: "12"}, "testDeprecation": {In: "1", Deprecated: "1"},
		"testDeprecationInVersion2": {In: "12", Deprecated: "2"}, "testRemoval": {In: "1"},
	} {
		server.Register(&server.Command{Name: name, Needs: server.Free, API: api, Where: server.Anywhere,
			Run: server.Nothing})
	}
}

func runPing(r *server.Request, dst []byte) ([]byte, error) {
	return dst, args.CheckFields(r, r.Cmd.Name)
}
