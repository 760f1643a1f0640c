// Package operations tests the results of operations, cursors, change streams and transactions:
// they are what a model says, cost no more than a table says, and hold nothing once they are over.
package operations
