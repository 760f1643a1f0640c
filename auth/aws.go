package auth

import (
	"allium/internal/redact"
	"context"
	"fmt"
)

// AWSCredentials are the keys of MONGODB-AWS. They never print their secrets.
type AWSCredentials struct {
	AccessKeyID     string
	SecretAccessKey Secret
	SessionToken    Secret // of temporary credentials, else ""
}

// Format prints the keys without their secrets, whatever the verb.
func (c AWSCredentials) Format(f fmt.State, _ rune) { redact.Fields(f, c) }

// AWSCallback returns keys, within the context's time, which is that of an OIDC.Callback. It may be called by many goroutines, once for
// each connection that is made.
type AWSCallback func(ctx context.Context) (AWSCredentials, error)
