package prose

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/internal/drivertest/rig"
	"allium/internal/testdeploy"
	"allium/mongoerr"
	"allium/mongotest"
)

// The scenarios of the specification Authentication, tests/mongodb-aws.md, as far as a server is
// needed for them: keys in the environment with and without a session token (Lambda), and a
// provider of the program's own, which wins over the environment. Where else keys come from is
// tested in internal/auth.
func TestProseAWS(t *testing.T) {
	d := testdeploy.Mock(t, "an in-memory network", mongotest.Auth("root", "root"), mongotest.InMemory())
	for i, key := range []mongotest.AWSKey{{ID: "AKIAPERMANENT", Secret: "wJalrXUtnFEMI/K7MDENG"}, {ID: "ASIATEMPORARY", Secret: "s+e/c", Token: "AQoDYXdzEJr"}} {
		if err := d.AddUser(mongotest.User{Name: fmt.Sprintf("arn:aws:iam::1:user/%d", i), DB: "$external", Roles: []string{"root"}, AWS: key}); err != nil {
			t.Fatal(err)
		}
	}
	try := func(callback auth.AWSCallback) error {
		client := rig.Open(t, "mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-AWS", allium.ClientOptions{Dialer: d, AWSCredentials: callback})
		_, err := client.Database("aws").Collection("test").CountDocuments(t.Context(), bson.D{})
		return err
	}
	for _, test := range []struct {
		name, id, secret, token string
		ok                      bool
	}{
		{"regular credentials", "AKIAPERMANENT", "wJalrXUtnFEMI/K7MDENG", "", true},
		{"session token", "ASIATEMPORARY", "s+e/c", "AQoDYXdzEJr", true},
		{"wrong secret", "AKIAPERMANENT", "x", "", false},
		{"a token that is missing", "ASIATEMPORARY", "s+e/c", "", false},
		{"a token too many", "AKIAPERMANENT", "wJalrXUtnFEMI/K7MDENG", "AQoDYXdzEJr", false},
		{"unknown key", "AKIANOBODY", "x", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", test.id)
			t.Setenv("AWS_SECRET_ACCESS_KEY", test.secret)
			t.Setenv("AWS_SESSION_TOKEN", test.token)
			err := try(nil)
			if _, isAuth := errors.AsType[*mongoerr.AuthError](err); test.ok != (err == nil) || err != nil && !isAuth {
				t.Errorf("error %v, want success %v", err, test.ok)
			}
			called := false
			if err := try(func(context.Context) (auth.AWSCredentials, error) {
				called = true
				return auth.AWSCredentials{AccessKeyID: "AKIAPERMANENT", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG"}, nil
			}); err != nil || !called {
				t.Errorf("provider called %v, error %v", called, err)
			}
		})
	}
}

func TestAWSConfiguration(t *testing.T) {
	provider := func(context.Context) (auth.AWSCredentials, error) { return auth.AWSCredentials{}, nil }
	for uri, o := range map[string]allium.ClientOptions{
		"mongodb://u:p@localhost/?authMechanism=MONGODB-AWS": {},
		"mongodb://u:p@localhost":                            {AWSCredentials: provider},
		"mongodb://localhost":                                {AWSCredentials: provider},
	} {
		if client, err := allium.Open(uri, o); err == nil {
			client.Close(t.Context())
			t.Errorf("%s: no error", uri)
		}
	}
	keys := auth.AWSCredentials{AccessKeyID: "AKID", SecretAccessKey: "hidden", SessionToken: "hidden"}
	if text := fmt.Sprintf("%v %+v %#v", keys, keys, keys); strings.Contains(text, "hidden") {
		t.Error(text)
	}
}
