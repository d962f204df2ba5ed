"""`python -m api_gateway`."""

from api_gateway.main import main

if __name__ == "__main__":
    main()
