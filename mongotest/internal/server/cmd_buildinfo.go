package server

import (
	"runtime"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
)

func init() {
	register(&Command{Name: "buildInfo", Aliases: []string{"buildinfo"}, NoAuth: true, Where: Anywhere, Run: runBuildInfo})
}

func runBuildInfo(r *Request, dst []byte) ([]byte, error) {
	v := r.Node.cfg.Version
	dst = bson.AppendString(dst, "version", v.String())
	dst = bson.AppendString(dst, "gitVersion", "0000000000000000000000000000000000000000")
	dst = bsondoc.AppendStrings(dst, "modules", nil)
	dst = bson.AppendString(dst, "allocator", "go")
	engine := "mozjs"
	if r.Node.cfg.NoScripting {
		engine = "none"
	}
	dst = bson.AppendString(dst, "javascriptEngine", engine)
	dst = bson.AppendString(dst, "sysInfo", "deprecated")
	at, dst := bson.BeginArrayElement(dst, "versionArray")
	for i, n := range []int{v.Major, v.Minor, v.Patch, 0} {
		dst = bson.AppendInt32Value(bson.AppendIndexHeader(dst, bson.TypeInt32, i), int32(n))
	}
	dst = bson.EndDocument(dst, at)
	at, dst = bson.BeginDocumentElement(dst, "openssl")
	dst = bson.AppendString(dst, "running", "disabled")
	dst = bson.EndDocument(dst, at)
	at, dst = bson.BeginDocumentElement(dst, "buildEnvironment")
	dst = bson.AppendString(dst, "target_arch", runtime.GOARCH)
	dst = bson.AppendString(dst, "target_os", runtime.GOOS)
	dst = bson.EndDocument(dst, at)
	if r.Node.cfg.DataLake {
		lake, d := bson.BeginDocumentElement(dst, "dataLake")
		dst = bson.EndDocument(bson.AppendString(d, "version", v.String()), lake)
	}
	dst = bson.AppendInt32(dst, "bits", 64)
	dst = bson.AppendBool(dst, "debug", false)
	dst = bson.AppendInt32(dst, "maxBsonObjectSize", MaxBSONObjectSize)
	return bsondoc.AppendStrings(dst, "storageEngines", []string{"wiredTiger"}), nil
}
