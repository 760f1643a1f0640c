package admin

import (
	"allium/mongotest/internal/server"
)

func init() {
	server.Register(&server.Command{Name: "ping", NoAuth: true, Where: server.Anywhere, Run: func(r *server.Request, dst []byte) ([]byte, error) {
		return dst, nil
	}})
	// Commands that servers have for tests, such as these of the Stable API.
	for name := range server.TestCommands {
		server.Register(&server.Command{Name: name, Where: server.Anywhere, Run: func(r *server.Request, dst []byte) ([]byte, error) {
			return dst, nil
		}})
	}
}
