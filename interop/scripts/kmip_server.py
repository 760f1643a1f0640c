# A KMIP server, of Debian's python3-pykmip, until it is killed: kmip_server.py PORT FOLDER. The folder has
# server.pem, server-key.pem and ca.pem, and is where the server keeps what it is told.
import logging
import os
import sys

from kmip.services.server import KmipServer

port, folder = int(sys.argv[1]), sys.argv[2]


def at(name):
    return os.path.join(folder, name)


class Ready(logging.Handler):
    """Says that the server listens and can be interrupted, which it logs once both are so."""

    def emit(self, record):
        if record.getMessage().startswith("Starting connection service"):
            print("ready", flush=True)


server = KmipServer(
    hostname="127.0.0.1", port=port, certificate_path=at("server.pem"), key_path=at("server-key.pem"), ca_path=at("ca.pem"),
    auth_suite="TLS1.2", config_path=None, log_path=at("server.log"), policy_path=None, enable_tls_client_auth=True,
    logging_level="DEBUG", database_path=at("keys.db"))
logging.getLogger("kmip.server").addHandler(Ready())
with server:
    server.serve()
