package auth_test

import (
	"context"
	"fmt"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/mongotest"
)

// A service gets its access tokens from its platform. The client asks for one when it has none, and
// again when servers no longer accept it.
func ExampleOIDC() {
	d, err := mongotest.Open(mongotest.OIDC(mongotest.IdentityProvider{Issuer: "https://idp.example"}))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	d.AddUser(mongotest.User{Name: "billing", DB: "$external", Roles: []string{"readWriteAnyDatabase"}, AccessTokens: []string{"eyJhbGciOi"}})

	client, err := allium.Open("mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-OIDC", allium.ClientOptions{OIDC: &auth.OIDC{
		Callback: func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
			return auth.OIDCCredential{AccessToken: "eyJhbGciOi"}, nil // from the platform, within ctx
		},
	}})
	if err != nil {
		panic(err)
	}
	defer client.Close(context.Background())
	_, err = client.Database("app").Collection("bills").InsertOne(context.Background(), bson.D{{Key: "total", Value: 42}})
	fmt.Println(err)
	// Output: <nil>
}

// A tool has a person log in at the identity provider that the server names.
func ExampleOIDC_person() {
	d, err := mongotest.Open(mongotest.OIDC(mongotest.IdentityProvider{Issuer: "https://idp.example", ClientID: "tool"}))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	d.AddUser(mongotest.User{Name: "ada", DB: "$external", Roles: []string{"readAnyDatabase"}, AccessTokens: []string{"eyJhbGciOi"}})

	client, err := allium.Open("mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-OIDC", allium.ClientOptions{OIDC: &auth.OIDC{
		HumanCallback: func(ctx context.Context, p auth.OIDCParams) (auth.OIDCCredential, error) {
			fmt.Println("log in at", p.IDP.Issuer, "as a user of", p.IDP.ClientID)
			return auth.OIDCCredential{AccessToken: "eyJhbGciOi", RefreshToken: "for the next time"}, nil
		},
		AllowedHosts: append(auth.DefaultOIDCHosts(), "*.db.example"),
	}})
	if err != nil {
		panic(err)
	}
	defer client.Close(context.Background())
	n, err := client.Database("app").Collection("bills").CountDocuments(context.Background(), bson.D{})
	fmt.Println(n, err)
	// Output:
	// log in at https://idp.example as a user of tool
	// 0 <nil>
}

// Keys of a provider, for example of Amazon's SDK, whose Retrieve has the same shape.
func ExampleAWSCallback() {
	d, err := mongotest.Open(mongotest.Auth("root", "root"))
	if err != nil {
		panic(err)
	}
	defer d.Stop()
	d.AddUser(mongotest.User{Name: "arn:aws:iam::1:user/app", DB: "$external", Roles: []string{"readWriteAnyDatabase"}, AWS: mongotest.AWSKey{ID: "AKIA", Secret: "secret"}})

	client, err := allium.Open("mongodb://"+d.Hosts()[0]+"/?authMechanism=MONGODB-AWS", allium.ClientOptions{
		AWSCredentials: func(ctx context.Context) (auth.AWSCredentials, error) {
			return auth.AWSCredentials{AccessKeyID: "AKIA", SecretAccessKey: "secret"}, nil
		},
	})
	if err != nil {
		panic(err)
	}
	defer client.Close(context.Background())
	_, err = client.Database("app").Collection("bills").InsertOne(context.Background(), bson.D{{Key: "total", Value: 42}})
	fmt.Println(err)
	// Output: <nil>
}
