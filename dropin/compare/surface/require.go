//go:build required

package surface

// What the compared packages need is in this module's go.sum because of these imports.
import (
	_ "go.mongodb.org/mongo-driver/bson/mgocompat"
	_ "go.mongodb.org/mongo-driver/mongo/gridfs"
	_ "go.mongodb.org/mongo-driver/mongo/integration/mtest"
	_ "go.mongodb.org/mongo-driver/v2/bson/mgocompat"
	_ "go.mongodb.org/mongo-driver/v2/mongo"
	_ "go.mongodb.org/mongo-driver/v2/x/mongo/driver/drivertest"
	_ "go.mongodb.org/mongo-driver/v2/x/mongo/driver/xoptions"
	_ "go.mongodb.org/mongo-driver/x/mongo/driver/drivertest"
)
