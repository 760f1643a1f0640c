package mongotest_test

import (
	"os"
	"testing/fstest"

	"allium/mongotest"
)

func ExampleScripts() {
	scripts := fstest.MapFS{ // os.DirFS("docker-entrypoint-initdb.d")
		"01-users.js": {Data: []byte(`
			db.createUser({user: "app", pwd: process.env.APP_PASSWORD, roles: ["readWrite"]})
			db.items.createIndex({name: 1}, {unique: true})`)},
		"items.json":   {Data: []byte(`[{"name": "pen"}, {"name": "ink"}]`)},
		"02-report.js": {Data: []byte(`print(db.getName(), db.getUsers().users.length)`)},
	}
	d, err := mongotest.Open(mongotest.Auth("root", "secret"), mongotest.Scripts(scripts, mongotest.ScriptOptions{
		Database: "shop", Out: os.Stdout, Env: map[string]string{"APP_PASSWORD": "apple"},
	}))
	if err != nil {
		panic(err) // 01-users.js:2:24: MongoServerError: ...
	}
	defer d.Stop()
	// Output: shop 1
}
