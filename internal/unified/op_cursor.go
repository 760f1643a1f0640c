package unified

import (
	"context"

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
			if c.TryNext(ctx) {
				return doc(append(bson.Raw(nil), c.Current()...), nil)
			}
			return result{}, c.Err()
		},
		"iterateUntilDocumentOrError": func(ctx context.Context, _ *runner, c *cursor, _ *arguments) (result, error) {
			for {
				if c.Next(ctx) {
					return doc(append(bson.Raw(nil), c.Current()...), nil)
				}
				if err := c.Err(); err != nil {
					return result{}, err
				}
				if c.ID() == 0 { // else it tails, and there may be more
					return result{}, broken("the cursor is at its end")
				}
				if err := ctx.Err(); err != nil {
					return result{}, err
				}
			}
		},
	})
	register(map[string]operation[*allium.Database]{
		"runCursorCommand": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
			return drain(ctx)(runCursorCommand(ctx, db, a))
		},
		"createCommandCursor": func(ctx context.Context, _ *runner, db *allium.Database, a *arguments) (result, error) {
			cur, err := runCursorCommand(ctx, db, a)
			return entity(cur, err)
		},
	})
}

func runCursorCommand(ctx context.Context, db *allium.Database, a *arguments) (*cursor, error) {
	a.string("commandName")
	return allium.RunCursorCommand[bson.Raw](ctx, db, a.document("command"),
		allium.RunCursorCommandOptions{ReadPreference: a.readPreference("readPreference"),
			BatchSize: a.intp("batchSize"), MaxTime: a.millis("maxTimeMS"), Comment: a.any("comment"),
			CursorType:  a.cursorType(),
			TimeoutMode: a.timeoutMode(), Timeout: a.timeout()})
}

func (a *arguments) cursorType() allium.CursorType {
	switch s := a.string("cursorType"); s {
	case "", "nonTailable":
	case "tailable":
		return allium.CursorTailable
	case "tailableAwait":
		return allium.CursorTailableAwait
	default:
		a.fail("cursorType", a.doc.Lookup("cursorType"), "nonTailable, tailable or tailableAwait")
	}
	return ""
}

func (a *arguments) timeoutMode() allium.TimeoutMode {
	switch s := a.string("timeoutMode"); s {
	case "":
	case "cursorLifetime":
		return allium.TimeoutOverLifetime
	case "iteration":
		return allium.TimeoutPerIteration
	default:
		a.fail("timeoutMode", a.doc.Lookup("timeoutMode"), "cursorLifetime or iteration")
	}
	return ""
}
