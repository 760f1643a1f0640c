package credentials

import (
	"flag"
	"fmt"
	"os"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

const cluster = "mongodb+srv://app:vE8kQ2dd@shop.ab1cd.mongodb.net/?retryWrites=true" // want `a connection string with the password of app is in the source`

func bad() {
	options.Client().ApplyURI("mongodb://app:vE8kQ2dd@db1.shop.net:27017,db2.shop.net/") // want `with the password of app`
	options.Client().SetAuth(options.Credential{Username: "app", Password: "vE8kQ2dd"})  // want `a password is in the source`
}

func good() {
	options.Client().ApplyURI("mongodb://root:vE8kQ2dd@localhost:27017")
	options.Client().ApplyURI("mongodb://root:vE8kQ2dd@mongo:27017")
	options.Client().ApplyURI("mongodb://user:password@db.shop.net")
	options.Client().ApplyURI(fmt.Sprintf("mongodb://%s:%s@db.shop.net", os.Getenv("U"), os.Getenv("P")))
	options.Client().ApplyURI("mongodb+srv://app:<password>@shop.ab1cd.mongodb.net")
	options.Client().ApplyURI("mongodb+srv://app@shop.ab1cd.mongodb.net")
	options.Client().SetAuth(options.Credential{Username: "app", Password: os.Getenv("P")})
	flag.String("uri", "", "such as mongodb://USER:PASSWORD@db.shop.net")
}
