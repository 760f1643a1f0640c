package surface

// V2 is the path of the official driver's module.
const V2 = "go.mongodb.org/mongo-driver/v2"

// V2Packages are the packages of that module that are compared: all outside of x and internal, and
// the parts of x that programs were seen to use.
func V2Packages() []string {
	paths := []string{
		"bson", "bson/mgocompat", "event", "mongo", "mongo/address", "mongo/options", "mongo/readconcern",
		"mongo/readpref", "mongo/writeconcern", "tag", "version", "x/bsonx/bsoncore", "x/mongo/driver/connstring",
		"x/mongo/driver/drivertest", "x/mongo/driver/xoptions", "x/mongo/driver", "x/mongo/driver/dns",
		"x/mongo/driver/session", "x/mongo/driver/topology", "x/mongo/driver/wiremessage",
	}
	for i, path := range paths {
		paths[i] = V2 + "/" + path
	}
	return paths
}

// V2Only are the names that are compared of packages that are not taken whole.
var V2Only = map[string][]string{
	"x/mongo/driver": {"TransientTransactionError", "ErrNoCursor", "Error", "QueryFailureError", "RetryablePoolError",
		"WriteCommandError", "WriteConcernError", "WriteError", "WriteErrors"},
	"x/mongo/driver/session": {
		"ErrAbortAfterCommit", "ErrAbortTwice", "ErrCommitAfterAbort", "ErrNoTransactStarted", "ErrSessionEnded",
		"ErrSnapshotTransaction", "ErrTransactInProgress", "ErrUnackWCUnsupported",
	},
	"x/mongo/driver/topology": {"ConnectionError", "MinSupportedMongoDBVersion", "ServerSelectionError",
		"SupportedWireVersions"},
}

// V1 is the path of version 1 of the official driver's module.
const V1 = "go.mongodb.org/mongo-driver"

// V1Packages are the packages of that module that are compared: those of V2Packages, as far as it
// has them, and its own.
func V1Packages() []string {
	paths := []string{
		"bson", "bson/bsoncodec", "bson/bsonoptions", "bson/bsonrw", "bson/bsonrw/bsonrwtest", "bson/bsontype",
		"bson/mgocompat", "bson/primitive", "event", "mongo",
		"mongo/address", "mongo/description", "mongo/gridfs", "mongo/integration/mtest", "mongo/options",
		"mongo/readconcern", "mongo/readpref",
		"mongo/writeconcern", "tag", "version", "x/bsonx/bsoncore", "x/mongo/driver", "x/mongo/driver/connstring",
		"x/mongo/driver/dns",
		"x/mongo/driver/drivertest", "x/mongo/driver/session", "x/mongo/driver/topology", "x/mongo/driver/wiremessage",
	}
	for i, path := range paths {
		paths[i] = V1 + "/" + path
	}
	return paths
}

// V1Only is V2Only for that module.
var V1Only = map[string][]string{
	"mongo/integration/mtest": {
		"BatchIdentifier", "CreateCommandErrorResponse", "CreateCursorResponse", "CreateSuccessResponse",
		"CreateWriteConcernErrorResponse",
		"CreateWriteErrorsResponse", "FirstBatch", "New", "NewOptions", "NextBatch", "T", "Options", "Collection",
		"Mock", "ClientType", "CommandError", "WriteError", "WriteConcernError", "TestDb",
	},
	"x/mongo/driver": V2Only["x/mongo/driver"],
	"x/mongo/driver/drivertest": {"ChannelNetConn", "GetCommandFromMsgWireMessage", "GetCommandFromQueryWireMessage",
		"MakeReply"},
	"x/mongo/driver/session":  V2Only["x/mongo/driver/session"],
	"x/mongo/driver/topology": V2Only["x/mongo/driver/topology"],
}

// V1Report is V2Report for that module.
func V1Report(dir string) (Report, error) {
	want, err := Load(dir, "go.mod", V1Packages())
	if err != nil {
		return Report{}, err
	}
	have, err := Load(dir, "dropin.mod", V1Packages())
	if err != nil {
		return Report{}, err
	}
	return Compare(want, have, V1+"/", V1Only), nil
}

// V2Report compares the official module with the drop-in. dir is the folder of a module that has
// the official one with its file go.mod, and the drop-in with dropin.mod.
func V2Report(dir string) (Report, error) {
	want, err := Load(dir, "go.mod", V2Packages())
	if err != nil {
		return Report{}, err
	}
	have, err := Load(dir, "dropin.mod", V2Packages())
	if err != nil {
		return Report{}, err
	}
	return Compare(want, have, V2+"/", V2Only), nil
}
