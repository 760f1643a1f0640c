// Package command holds the server's commands as values: one small file per command, each of which
// says how the command's fields become bytes and how its reply becomes a result. What every command
// has in common (session, transaction, cluster time, read preference, concerns, time limit, stable
// API) is added by the executor.
package command
