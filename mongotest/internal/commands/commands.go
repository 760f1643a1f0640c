// Package commands links the families of commands that stand outside of package server into a
// program. Each registers its commands in the server's table when the program starts.
package commands

import (
	_ "allium/mongotest/internal/commands/admin"
	_ "allium/mongotest/internal/commands/catalog"
	_ "allium/mongotest/internal/commands/cluster"
	_ "allium/mongotest/internal/commands/login"
	_ "allium/mongotest/internal/commands/read"
	_ "allium/mongotest/internal/commands/users"
	_ "allium/mongotest/internal/commands/write"
)
