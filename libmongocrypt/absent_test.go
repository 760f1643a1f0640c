//go:build !libmongocrypt

package libmongocrypt

import "testing"

func TestLibmongocrypt(t *testing.T) {
	t.Skip("libmongocrypt is not used: install Debian's libmongocrypt-dev and run with -tags libmongocrypt")
}
