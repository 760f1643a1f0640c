package auth

import (
	"allium/internal/redact"
	"context"
	"fmt"
)

// AWSCredentials are the keys of MONGODB-AWS. Their secrets are redacted when they are printed.
type AWSCredentials struct {
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret // of temporary credentials, else ""
}

// Format prints the keys without their secrets, whatever the verb.
func (c AWSCredentials) Format(f fmt.State, _ rune) { redact.Fields(f, c) }

// AWSCallback returns the keys for a new connection. It must return when ctx ends, whose deadline
// is that of an OIDC.Callback. It is called once for each connection, by several goroutines at
// once.
type AWSCallback func(ctx context.Context) (AWSCredentials, error)
