package unified

import (
	"context"
	"errors"

	"allium"
	"allium/bson"
)

type cursor = allium.Cursor[bson.Raw]

func init() {
	register(map[string]operation[*cursor]{
		"close": func(ctx context.Context, _ *runner, c *cursor, a *arguments) (result, error) {
			c.Close(ctx, allium.CloseCursorOptions{Timeout: a.timeout()}) // its errors do not count
			return result{}, nil
		},
		"iterateOnce": func(ctx context.Context, _ *runner, c *cursor, _ *arguments) (result, error) {
			if c.Next(ctx) {
				return doc(append(bson.Raw(nil), c.Current()...), nil)
			}
			return result{}, c.Err()
		},
		"iterateUntilDocumentOrError": func(ctx context.Context, _ *runner, c *cursor, _ *arguments) (result, error) {
			if c.Next(ctx) {
				return doc(append(bson.Raw(nil), c.Current()...), nil)
			}
			if err := c.Err(); err != nil {
				return result{}, err
			}
			return result{}, errors.New("the cursor is at its end")
		},
	})
}
