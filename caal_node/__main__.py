from caal_node.cli import main

main()
