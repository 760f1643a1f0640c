package unified

import (
	"context"

	"allium"
)

func init() {
	register(map[string]operation[*clientEntity]{
		"close": func(ctx context.Context, _ *runner, c *clientEntity, _ *arguments) (result, error) {
			c.closed = true
			return result{}, c.Close(ctx)
		},
		"appendMetadata": func(_ context.Context, _ *runner, c *clientEntity, a *arguments) (result, error) {
			sub := &arguments{doc: a.document("driverInfoOptions")}
			sub.must("name")
			info := allium.DriverInfo{Name: sub.string("name"), Version: sub.string("version"),
				Platform: sub.string("platform")}
			a.adopt(sub)
			return result{}, c.AppendDriverInfo(info)
		},
	})
}
