package main

import (
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// credentials prints which credentials Connect takes, and whether a server takes those without a
// name: the texts are each driver's own.
func credentials(*mongo.Database) {
	props := map[string]string{"AWS_SESSION_TOKEN": "t"}
	for _, mechanism := range []string{"", "SCRAM-SHA-1", "SCRAM-SHA-256", "PLAIN", "MONGODB-X509", "MONGODB-AWS",
		"MONGODB-OIDC", "none", "MONGODB-CR"} {
		for i, c := range []options.Credential{
			{}, {Username: "u"}, {Username: "u", Password: "p"}, {Password: "p"}, {Username: "u", PasswordSet: true},
			{AuthSource: "x"}, {Username: "u", Password: "p", AuthSource: "x"},
			{Username: "u", Password: "p", AuthMechanismProperties: props}, {AuthMechanismProperties: props},
		} {
			c.AuthMechanism = mechanism
			client, err := mongo.Connect(options.Client().SetHosts([]string{"localhost:1"}).SetAuth(c))
			say(fmt.Sprintf("credential %q %d", mechanism, i), client != nil, err == nil)
			if err == nil {
				client.Disconnect(ctx)
			}
		}
	}
	for i, c := range []options.Credential{{}, {Username: "u"}, {Password: "p"}, {AuthMechanism: "MONGODB-X509"}} {
		client := connect(options.Client().SetAuth(c).SetServerSelectionTimeout(5 * time.Second))
		err := client.Ping(ctx, nil)
		say(fmt.Sprint("ping as nobody ", i), err != nil, mongo.IsNetworkError(err), mongo.IsTimeout(err))
		client.Disconnect(ctx)
	}
}
