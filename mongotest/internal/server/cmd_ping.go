package server

import (
	"allium/mongotest/internal/release"
)

func init() {
	register(&Command{Name: "ping", NoAuth: true, Where: Anywhere, Run: func(r *Request, dst []byte) ([]byte, error) {
		return dst, nil
	}})
	// Commands that servers have for tests, such as these of the Stable API.
	for name := range testCommands {
		register(&Command{Name: name, Since: release.At(5, 0, 0), Where: Anywhere, Run: func(r *Request, dst []byte) ([]byte, error) {
			return dst, nil
		}})
	}
}
