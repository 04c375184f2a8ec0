"""The reference TxLog under test (`nodes.txlog`)."""
